import attrs

from elastic.core.derived import Memo, beside, derived
from elastic.core.values import evolve, frozen


@frozen
class Sum:
    of: tuple[int, ...]
    asked: list[str]
    memo: Memo = beside()

    @derived
    def total(self) -> int:
        """What they come to."""
        self.asked.append("total")
        return sum(self.of)


def test_a_derived_property_is_worked_out_once_and_only_on_demand() -> None:
    value = Sum((1, 2), [])
    assert value.asked == []
    assert (value.total, value.total) == (3, 3)
    assert value.asked == ["total"]


def test_each_value_has_a_memo_of_its_own() -> None:
    assert [Sum((each,), []).total for each in (1, 2)] == [1, 2]


def test_a_memo_is_no_part_of_the_value() -> None:
    asked, known = Sum((1,), []), Sum((1,), ["total"])
    assert asked.total == 1
    assert asked == known
    assert "total" not in repr(evolve(asked, asked=[]))


def test_a_changed_value_works_out_its_own() -> None:
    value = Sum((1, 2), [])
    assert value.total == 3
    assert evolve(value, of=(4,)).total == attrs.evolve(value, of=(4,)).total == 4


def test_a_property_keeps_its_description() -> None:
    assert Sum.total.__doc__ == "What they come to."
