"""The stages of a run in their order: what must be estimated first, then the method's own."""

from __future__ import annotations

from dataclasses import replace

from crust.training.method import Method, Stage


class Plan:
    """A method, and before it the estimator of the noise where the method's settings ask for one."""

    def __init__(self, method: Method, estimator: Method | None = None):
        self.method, self.estimator = method, estimator

    def at(self, number: int) -> tuple[Method, Stage] | None:
        """Who acts in a stage of the run, and how it is trained; None after the last one.

        Example:
            >>> class Two(Method):
            ...     def stages(self):
            ...         return [Stage("first"), Stage("second")]
            >>> plan = Plan(Two(Method.Settings()))
            >>> plan.at(1)[1].name, plan.at(2)
            ('second', None)
        """
        before = 0
        if self.estimator is not None:
            first = self.estimator.stages()
            if number < len(first):
                return self.estimator, first[number]
            before = len(first)
        stage = self.method.next_stage(number - before)
        if stage is None:
            return None
        if before and number == before and stage.start == "keep":
            stage = replace(stage, start="initial")  # the method begins as if nothing had been estimated
        return self.method, stage
