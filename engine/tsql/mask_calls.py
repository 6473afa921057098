"""CDC functions of an update mask that is a column, as Spark and the source say them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.tsql.evaluation import Evaluator, call_of, session_function
from engine.tsql.folding import source_literal
from engine.tsql.messages import sql_error
from engine.tsql.rewriting import BOOLEAN

_BITS = 8
_INSTEAD = "Select it from the change data alone, in a derived table or into a temporary table."


def mask_functions(tree: exp.Expr, evaluator: Evaluator) -> None:
    """fn_cdc_is_bit_set and fn_cdc_has_column_changed at the source. Raises 50040 for other functions."""
    for node in list(tree.find_all(exp.Dot)):
        call = call_of(node)
        name = None if call is None else session_function(call[0])
        if call is None or name is None:
            continue
        if name == "FN_CDC_IS_BIT_SET":
            new = _bit_at_source(_ordinal(call[1][0]), call[1][1].copy())
        elif name == "FN_CDC_HAS_COLUMN_CHANGED":
            ordinal = source_literal(evaluator.value(ordinal_call(call[1])))
            new = _bit_at_source(_ordinal(ordinal), call[1][2].copy())
        else:
            raise sql_error(50040, f"sys.{name.lower()} of a column of the source", _INSTEAD)
        new.meta[BOOLEAN] = True
        node.replace(new)


def ordinal_call(arguments: list[exp.Expr]) -> exp.Expr:
    """fn_cdc_get_column_ordinal of the first two arguments of fn_cdc_has_column_changed."""
    function = exp.Anonymous(
        this="fn_cdc_get_column_ordinal", expressions=[each.copy() for each in arguments[:2]]
    )
    return exp.Dot(this=exp.to_identifier("sys"), expression=function)


def bit_set(position: exp.Expr, mask: exp.Expr) -> exp.Expr:
    """fn_cdc_is_bit_set for Spark: ordinal 1 is the lowest bit of the last byte; 0 beyond the mask."""
    if (ordinal := _ordinal(position)) is None:
        return exp.false()
    digits = exp.func("hex", mask)
    # From the right: two digits are a byte. Beyond the mask the text is empty, and its number NULL.
    from_right = exp.Add(
        this=exp.Mul(this=exp.Literal.number(2), expression=_byte(ordinal, "div")),
        expression=exp.Literal.number(1),
    )
    end = exp.Sub(this=exp.func("length", digits), expression=exp.Paren(this=from_right))
    pair = exp.Anonymous(this="substring", expressions=[digits.copy(), end, exp.Literal.number(2)])
    number = exp.Anonymous(this="conv", expressions=[pair, exp.Literal.number(16), exp.Literal.number(10)])
    whole = exp.Cast(this=number, to=exp.DataType.build("int"))
    power = exp.Anonymous(this="shiftleft", expressions=[exp.Literal.number(1), _bit(ordinal)])
    masked = exp.BitwiseAnd(this=whole, expression=power)
    twice = exp.Mul(this=exp.Literal.number(2), expression=_byte(ordinal, "div"))
    inside = exp.And(
        this=exp.GT(this=exp.func("length", digits.copy()), expression=twice),
        expression=exp.GT(this=ordinal.copy(), expression=exp.Literal.number(0)),
    )
    is_set = exp.NEQ(this=exp.Paren(this=masked), expression=exp.Literal.number(0))
    return exp.func("if", inside, is_set, exp.false())


def _bit_at_source(ordinal: exp.Expr | None, mask: exp.Expr) -> exp.Expr:
    if ordinal is None:
        return exp.false()
    length = exp.Anonymous(this="octet_length", expressions=[mask])
    behind = exp.Add(this=_byte(ordinal, "/"), expression=exp.Literal.number(1))
    place = exp.Sub(this=length, expression=exp.Paren(this=behind))
    value = exp.Anonymous(this="get_byte", expressions=[mask.copy(), place])
    power = exp.Paren(this=exp.BitwiseLeftShift(this=exp.Literal.number(1), expression=_bit(ordinal)))
    masked = exp.BitwiseAnd(this=value, expression=power)
    is_set = exp.NEQ(this=exp.Paren(this=masked), expression=exp.Literal.number(0))
    inside = exp.And(
        this=exp.GT(this=length.copy(), expression=_byte(ordinal, "/")),
        expression=exp.GT(this=ordinal.copy(), expression=exp.Literal.number(0)),
    )
    choice = exp.Case(ifs=[exp.If(this=inside, true=is_set)], default=exp.false())
    return exp.Paren(this=choice)


def _before(ordinal: exp.Expr) -> exp.Paren:
    return exp.Paren(this=exp.Sub(this=ordinal.copy(), expression=exp.Literal.number(1)))


def _byte(ordinal: exp.Expr, divide: str) -> exp.Expr:
    """How many bytes stand behind that of the ordinal's bit."""
    if isinstance(ordinal, exp.Literal):
        return exp.Literal.number((int(ordinal.name) - 1) // _BITS)
    eight = exp.Literal.number(_BITS)
    if divide == "div":
        return exp.IntDiv(this=_before(ordinal), expression=eight)
    return exp.Paren(this=exp.Div(this=_before(ordinal), expression=eight, typed=True, safe=False))


def _bit(ordinal: exp.Expr) -> exp.Expr:
    """The number of the ordinal's bit within its byte."""
    if isinstance(ordinal, exp.Literal):
        return exp.Literal.number((int(ordinal.name) - 1) % _BITS)
    return exp.Paren(this=exp.Mod(this=_before(ordinal), expression=exp.Literal.number(_BITS)))


def _ordinal(position: exp.Expr) -> exp.Expr | None:
    """The ordinal that is asked for, a constant or of each row; None for one that no column has."""
    if isinstance(position, exp.Null):
        return None
    if isinstance(position, exp.Literal) and str(position.this).isdigit():
        return position if int(str(position.this)) else None
    return exp.Paren(this=position)


def ordinal_of_rows(instance: exp.Expr, column: exp.Expr, known: Sequence[tuple[str, str, int]]) -> exp.Expr:
    """fn_cdc_get_column_ordinal of columns; ``known``: capture instance, column and ordinal of each."""
    case = exp.Case()
    for capture_instance, name, ordinal in known:
        same = exp.And(this=_same(instance, capture_instance), expression=_same(column, name))
        case.append("ifs", exp.If(this=same, true=exp.Literal.number(ordinal)))
    return case if known else exp.Null()


def _same(node: exp.Expr, text: str) -> exp.Expr:
    """Names are compared without regard to case."""
    return exp.EQ(this=exp.func("lower", node.copy()), expression=exp.Literal.string(text.lower()))
