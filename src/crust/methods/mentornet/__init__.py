"""MentorNet (Jiang et al. 2018): a small network, taught beforehand, says how much each example counts."""
