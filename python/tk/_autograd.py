"""Calls that torch.autograd differentiates, by kernels that `grad` items derived.

Nothing here imports torch: only where a caller has, can there be a tensor that wants a gradient.
"""
import sys


def wants_gradient(values):
    """Whether torch is to record a call with these arguments."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)


def is_gradient(kernel, other):
    """Whether `other` maps the inputs of `kernel`, its results and a cotangent `d_<result>` of
    floating-point ones to gradients `d_<input>`: what a `grad` item declares."""
    count, names = kernel._num_params, kernel._names
    inputs, results = other._names[:other._num_params], other._names[other._num_params:]
    cotangents = inputs[len(names):]
    if inputs[:len(names)] != names or not cotangents:
        return False
    if any(mine.dtype != theirs.dtype or mine.is_tensor != theirs.is_tensor
           for mine, theirs in zip(kernel._arguments, other._arguments)):
        return False
    of_results = ["d_" + name for name in names[count:]]
    return (all(name in of_results for name in cotangents) and
            all(name[:2] == "d_" and name[2:] in names[:count] for name in results))


def gradient_for(kernel, given):
    """The kernel that gives the fewest gradients, but all that these arguments want."""
    wanted = ["d_" + name for name, value in zip(kernel._names, given)
              if getattr(value, "requires_grad", False)]
    gradients = kernel._gradients()
    enough = [g for g in gradients if set(wanted) <= set(g._names[g._num_params:])]
    if not enough:
        name = kernel.signature.split("(")[0]
        inputs = ", ".join(d_name[2:] for d_name in wanted)
        raise TypeError(
            f"{kernel.signature}: no `grad` item gives {', '.join(wanted)}. Add "
            f"`grad {name}_backward = {name} wrt ({inputs})` to the program, or launch under "
            "torch.no_grad() if no gradient is needed")
    return min(enough, key=lambda g: len(g._names))


def call(kernel, gradient, given, stream):
    """Launches the kernel, and its gradient when torch comes back through the results."""
    results = _function().apply(kernel, gradient, stream, *given[:kernel._num_params])
    return results[0] if len(results) == 1 else results


_made = None


def _function():
    global _made
    if _made is not None:
        return _made
    torch = sys.modules["torch"]

    class KernelFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, kernel, gradient, stream, *given):
            plain = [_detached(value) for value in given]
            results = kernel._launch(plain, stream)
            ctx.kernel, ctx.gradient, ctx.stream = kernel, gradient, stream
            ctx.scalars = [None if isinstance(value, torch.Tensor) else value for value in plain]
            ctx.is_tensor = [isinstance(value, torch.Tensor) for value in plain]
            tensors = [value for value in given if isinstance(value, torch.Tensor)]
            ctx.save_for_backward(*tensors, *results)
            ctx.mark_non_differentiable(*[r for r in results if not r.is_floating_point()])
            return results

        @staticmethod
        def backward(ctx, *cotangents):
            kernel, gradient = ctx.kernel, ctx.gradient
            count = kernel._num_params
            saved = iter([_detached(value) for value in ctx.saved_tensors])
            given = [next(saved) if is_tensor else scalar
                     for is_tensor, scalar in zip(ctx.is_tensor, ctx.scalars)]
            results = list(saved)
            by_name = {}
            for name, result, cotangent in zip(kernel._names[count:], results, cotangents):
                if "d_" + name in gradient._names:
                    by_name["d_" + name] = cotangent.detach().to(result.dtype).contiguous()
            rest = gradient._names[len(kernel._names):gradient._num_params]
            made = gradient._launch(given + results + [by_name[name] for name in rest], ctx.stream)
            found = dict(zip(gradient._names[gradient._num_params:], made))
            wanted = [found.get("d_" + name) if is_tensor else None
                      for name, is_tensor in zip(kernel._names, ctx.is_tensor)]
            return (None, None, None, *wanted)

    def _detached(value):
        return value.detach() if isinstance(value, torch.Tensor) else value

    _made = KernelFunction
    return _made
