import attrs
import pytest
from attrs.exceptions import FrozenInstanceError
from worlds import register

from elastic.core.evolving import evolve, soft
from elastic.core.rendezvous import RendezvousState
from elastic.core.world import Endpoint, Node

ENDPOINT = Endpoint("localhost", 1)


def test_a_value_is_what_attrs_makes_of_it_and_of_its_own_class() -> None:
    changed = evolve(ENDPOINT, port=2)
    assert changed == attrs.evolve(ENDPOINT, port=2)
    assert type(changed) is Endpoint


def test_a_changed_value_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        evolve(ENDPOINT, port=2).port = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del evolve(ENDPOINT, port=2).port


def test_validators_run() -> None:
    with pytest.raises(ValueError, match="port"):
        evolve(ENDPOINT, port=0)


def test_converters_run() -> None:
    with pytest.raises(TypeError):
        evolve(register(), seats={}).seats[Node("a", 1)] = None  # type: ignore[index]


def test_nothing_that_was_derived_is_taken_over() -> None:
    before: RendezvousState = register()
    assert before.token.version == 0
    assert evolve(before, version=1).token.version == 1


def test_a_soft_value_is_one_of_its_kind() -> None:
    assert soft(Endpoint)("localhost", 1).port == 1
    assert isinstance(soft(Endpoint)("localhost", 1), Endpoint)
    with pytest.raises(ValueError, match="port"):
        soft(Endpoint)("localhost", 0)
