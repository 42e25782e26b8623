"""An NVML of ours: GPUs that are not there."""

from __future__ import annotations

from collections.abc import Sequence

from elastic.adapters.workers.devices.nvml import Process


class FakeNvml:
    """GPUs by UUID, each with its MIG slices; None is a slot that is not in use."""

    class NVMLError(Exception):
        pass

    def __init__(
        self, *uuids: str | bytes, slices: tuple[tuple[str | None, ...], ...] = (), works: bool = True
    ) -> None:
        self._uuids, self._slices, self._works = uuids, slices, works
        self.open = 0

    def nvmlInit(self) -> None:
        if not self._works:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self._uuids)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if self._uuids[index] == "GPU-lost":
            raise self.NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetPciInfo(self, handle: object) -> object:
        raise self.NVMLError("not asked in this test")

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> Sequence[Process]:
        return ()

    def nvmlDeviceGetUUID(self, handle: object) -> str:
        return self._uuids[handle] if isinstance(handle, int) else handle  # type: ignore[return-value] # bytes, as in old versions

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int:
        assert isinstance(handle, int)
        if handle >= len(self._slices):
            raise self.NVMLError("Not Supported")
        return len(self._slices[handle])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: object, index: int) -> str:
        assert isinstance(device, int)
        uuid = self._slices[device][index]
        if uuid is None:
            raise self.NVMLError("Not Found")
        return uuid
