"""What Lightning's Trainer does, said to the launcher: which step is done, up to which one the work is safe, what is
validation.

trainer = Trainer(..., callbacks=[ElasticCallback()])
"""

from __future__ import annotations

from contextlib import ExitStack

from pytorch_lightning import Callback, LightningModule, Trainer

import elastic


class ElasticCallback(Callback):  # type: ignore[misc]
    """Without a launcher it does nothing. A step is one of the optimizer. `limit` is how long a validation may take before
    --hang-timeout takes it for a hang. A checkpoint counts as safe when the next batch begins, or the fit ends."""

    def __init__(self, limit: float = 3600.0) -> None:
        self._limit = limit
        self._validates = ExitStack()
        self._writes: int | None = None

    def on_train_batch_start(self, *others: object) -> None:
        self._say_saved()

    def on_train_batch_end(self, trainer: Trainer, *others: object) -> None:
        elastic.progress(trainer.global_step)

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, object]) -> None:
        self._writes = trainer.global_step  # the file is written after this

    def on_fit_end(self, *others: object) -> None:
        self._say_saved()

    def on_validation_start(self, *others: object) -> None:
        self._validates.enter_context(elastic.busy("evaluation", self._limit))

    def on_validation_end(self, *others: object) -> None:
        self._validates.close()

    def on_exception(self, *others: object) -> None:
        self._validates.close()  # its end is not told
        self._writes = None  # who knows if the file is whole

    def _say_saved(self) -> None:
        if self._writes is not None:
            elastic.saved(self._writes)
            self._writes = None
