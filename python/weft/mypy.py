"""The plugin of mypy: types of entry methods. Name it in the settings of mypy: ``plugins = ["weft.mypy"]``.

``proxy.method`` then is an EntryMethod with the parameters and the result of the method of the chare class.
These are errors: calls with wrong arguments, methods that the class does not have, and wrong arguments of a
constructor in ``args``. Other type checkers read the stubs alone. See docs/typing.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mypy.checker import TypeChecker
from mypy.errorcodes import ATTR_DEFINED
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    ARG_POS,
    CallExpr,
    Context,
    Decorator,
    Expression,
    ListExpr,
    RefExpr,
    StarExpr,
    TupleExpr,
)
from mypy.plugin import AttributeContext, CheckerPluginInterface, FunctionContext, MethodContext, Plugin
from mypy.typeops import type_object_type
from mypy.types import CallableType, Instance, Parameters, Type, get_proper_type

_HOME = "weft._chare.proxies."
_GIVES_LIST = {f"{_HOME}ElementProxy": False, f"{_HOME}CollectionProxy": True, f"{_HOME}Section": True}
_MAKERS = {f"{_HOME}Array", f"{_HOME}Group", f"{_HOME}Singleton"}
_INSERTS = {f"{_HOME}CollectionProxy.insert", f"{_HOME}Array.insert"}


class ProxyPlugin(Plugin):
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        proxy, _, name = fullname.rpartition(".")
        if proxy not in _GIVES_LIST:
            return None
        return lambda context: _entry_method(context, proxy, name)

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _check_made if fullname in _MAKERS else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _check_inserted if fullname in _INSERTS else None


def plugin(version: str) -> type[Plugin]:
    """What mypy calls."""
    return ProxyPlugin


def _entry_method(context: AttributeContext, proxy_name: str, name: str) -> Type:
    """The type of ``proxy.name``."""
    declared = get_proper_type(context.default_attr_type)
    chare = _chare_of(context.type)
    # Also called for what the proxy has itself.
    if chare is None or not isinstance(declared, Instance) or declared.type.fullname != f"{_HOME}EntryMethod":
        return declared
    method = _method_of(chare, name, context)
    if method is None or method.variables:
        return declared
    result = _awaited(method.ret_type)
    if _GIVES_LIST[proxy_name]:
        result = context.api.named_generic_type("builtins.list", [result])
    parameters = Parameters(
        method.arg_types, method.arg_kinds, method.arg_names, is_ellipsis_args=method.is_ellipsis_args
    )
    return declared.copy_modified(args=[parameters, result])


def _chare_of(proxy: Type) -> Instance | None:
    """The chare class of a proxy; None if it is not known."""
    proxy = get_proper_type(proxy)
    if not isinstance(proxy, Instance):
        return None
    for base in proxy.type.mro:
        if base.fullname in _GIVES_LIST:
            chare = get_proper_type(map_instance_to_supertype(proxy, base).args[0])
            return chare if isinstance(chare, Instance) else None
    return None


def _method_of(chare: Instance, name: str, context: AttributeContext) -> CallableType | None:
    """None if the type of the method is not known. What is no entry method is an error."""
    api = context.api
    class_name = chare.type.name
    found = chare.type.get(name)
    if name.startswith("_") or found is None:
        why = "; names with an underscore are private" if name.startswith("_") else ""
        _fail(api, f'The chare class "{class_name}" has no entry method "{name}"{why}', context.context)
        return None
    assert isinstance(api, TypeChecker)
    kind = get_proper_type(api.expr_checker.analyze_external_member_access(name, chare, context.context))
    owner = chare.type.get_containing_type_info(name)
    if owner is not None and owner.fullname == "weft._core.Chare":
        _fail(api, f'"{name}" is a name of weft.Chare and no entry method', context.context)
        return None
    if isinstance(found.node, Decorator) and any(map(_is_post_entry, found.node.original_decorators)):
        _fail(api, f'"{name}" is a post entry method, which only the runtime calls', context.context)
        return None
    if isinstance(kind, Instance) and not kind.type.has_readable_member("__call__"):
        _fail(api, f'"{name}" of the chare class "{class_name}" is no method', context.context)
        return None
    return kind if isinstance(kind, CallableType) else None


def _is_post_entry(decorator: Expression) -> bool:
    if not isinstance(decorator, CallExpr) or not isinstance(decorator.callee, RefExpr):
        return False
    return decorator.callee.fullname == "weft._chare.post_entry.post_entry"


def _fail(api: CheckerPluginInterface, message: str, context: Context) -> None:
    api.fail(message, context, code=ATTR_DEFINED)


def _awaited(result: Type) -> Type:
    """What a call of a method with this result gives: the results of coroutines are awaited."""
    coroutine = get_proper_type(result)
    if isinstance(coroutine, Instance) and coroutine.type.fullname == "typing.Coroutine":
        return coroutine.args[2]
    return result


def _check_made(context: FunctionContext) -> Type:
    chare = _chare_of(context.default_return_type)
    given = dict(zip(context.callee_arg_names, context.args, strict=True))
    arguments = given.get("args")
    sparse = any(given.get("sparse", ()))
    if chare is None or arguments is None or sparse:
        return context.default_return_type
    if not arguments:
        _check_constructor(context.api, chare, [], context.context)
    elif isinstance(arguments[0], (TupleExpr, ListExpr)):
        _check_constructor(context.api, chare, arguments[0].items, arguments[0])
    return context.default_return_type


def _check_inserted(context: MethodContext) -> Type:
    chare = _chare_of(context.type)
    if chare is not None:
        arguments = context.args[context.callee_arg_names.index("args")]
        _check_constructor(context.api, chare, arguments, context.context)
    return context.default_return_type


def _check_constructor(
    api: CheckerPluginInterface, chare: Instance, arguments: Sequence[Expression], context: Context
) -> None:
    if any(isinstance(argument, StarExpr) for argument in arguments):
        return
    assert isinstance(api, TypeChecker)
    constructor = type_object_type(chare.type, api.named_type)
    api.expr_checker.check_call(constructor, list(arguments), [ARG_POS] * len(arguments), context)
