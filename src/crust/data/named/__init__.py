"""Datasets by name: digits, CIFAR, mini WebVision, ImageNet."""
