"""What Hugging Face's Trainer does, said to the launcher: which step is done, and up to which one the work is safe.

trainer = Trainer(..., callbacks=[ElasticCallback()])
"""

from __future__ import annotations

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

import elastic


class ElasticCallback(TrainerCallback):  # type: ignore[misc]
    """Without a launcher it does nothing. A step is one of the optimizer."""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: object
    ) -> None:
        elastic.progress(state.global_step)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: object) -> None:
        elastic.saved(state.global_step)
