import attrs
import pytest
from attrs.exceptions import FrozenInstanceError
from worlds import register

from elastic.core.evolving import evolve, maker
from elastic.core.rendezvous import Done, RendezvousState
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


def test_a_changed_value_takes_no_memo_over() -> None:
    before: RendezvousState = register()
    assert before.token.version == 0
    assert evolve(before, version=1).token.version == 1


def test_a_value_with_one_field_can_change_it() -> None:
    assert evolve(Done(1), round=2) == Done(2)


def test_a_name_that_is_no_field_is_refused() -> None:
    with pytest.raises(KeyError, match="host_name"):
        evolve(ENDPOINT, host_name="localhost")


def test_a_maker_makes_frozen_values_of_its_class() -> None:
    made = maker(Endpoint)("localhost", 1)
    assert made == ENDPOINT
    assert type(made) is Endpoint
    with pytest.raises(FrozenInstanceError):
        made.port = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="port"):
        maker(Endpoint)("localhost", 0)
