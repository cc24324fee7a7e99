"""Scores of a model's self-attention, found from a forward pass and from nothing else.

Every call of the model's that multiplies queries by keys is watched at the level of ATen operators (`bmm`,
`baddbmm`), so nothing here knows how a family stores or splits its projections, pairs its heads or rotates them.
The hidden states that go into each attention module are replaced by random ones, one independent draw for each
batch entry; at each position the queries of head h are then an affine function of the input, found by least squares
over the batch:  q_h(i) = x A_h(i) + c,  k_h(j) = x B_h(j) + c'.  Biases and added positions go into the constant.
The form between a query at i and a key at j is A_h(i) B_h(j)ᵀ: with i = j the rotation cancels.
A normaliser inside the attention (on q, k or a latent) is made linear by taking its division out again, which
keeps whatever gain the module applies.
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

GAMMA = 2.0


def is_norm(module):
    return "norm" in type(module).__name__.lower() and not list(module.children())


def centres(module, width):
    """Whether `module` takes the mean out: adding a constant to its input then changes nothing."""
    like = next(module.parameters())
    x = torch.randn(1, 1, width, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(like.dtype)
    return torch.allclose(module.forward(x), module.forward(x + 1), rtol=1e-3, atol=1e-3)


def statistics(x, module, centred):
    """Mean (if it takes that out) and scale that `module` divides by."""
    eps = next((getattr(module, a) for a in ("eps", "variance_epsilon") if hasattr(module, a)), 1e-6)
    mean = x.mean(-1, keepdim=True) if centred else torch.zeros_like(x[..., :1])
    return mean, ((x - mean).pow(2).mean(-1, keepdim=True) + eps).sqrt()


def gain(module, width):
    """The elementwise gain that `module` applies, by probing it: (output at x − output's constant) / normalised x."""
    g = torch.Generator().manual_seed(7)
    x = torch.randn(2, 1, 1, width, generator=g, dtype=torch.float64)
    like = next(module.parameters(), None)
    if like is None:
        return None
    a, b = (module.forward(v[0].to(like.dtype)).double().reshape(-1) for v in x)
    centred = centres(module, width)
    na, nb = (((v - s[0]) / s[1]).reshape(-1) for v, s in ((v, statistics(v, module, centred)) for v in x))
    return (a - b) / (na - nb)


class Products(TorchDispatchMode):
    """Hands every product of two batches of matrices to `self.seen` while it is on."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.bmm.default:
            self.seen(args[0], args[1])
        elif func is torch.ops.aten.baddbmm.default:
            self.seen(args[1], args[2])
        return func(*args, **(kwargs or {}))


class Call:
    """One attention module: the random input that went in, the first square product q kᵀ, the norms before it."""

    def __init__(self, module, name, x):
        self.module, self.name, self.x = module, name, x
        self.q = self.k = None
        self.norms = []  # the norm before each application of the module

    @property
    def gain(self):
        """The gain of the norm before the attention; None where none, or different ones, precede it."""
        same = set(self.norms)
        return gain(*same, self.x.shape[-1]) if len(same) == 1 and None not in same else None

    def see(self, a, b):
        n = self.x.shape[1]
        if self.q is None and a.shape[1] == n and b.shape[2] == n and a.shape[2] != n and a.shape[0] % self.x.shape[0] == 0:
            self.q, self.k = a.detach().clone(), b.detach().clone().transpose(1, 2)

    def affine(self, y):
        """y [batch, positions, width] fitted on x at each position: maps [positions, d, width], worst residual."""
        maps, worst = [], 0.0
        for i in range(y.shape[1]):
            x = torch.cat([self.x[:, i], torch.ones(len(self.x), 1, dtype=torch.float64)], 1)
            solution = torch.linalg.lstsq(x, y[:, i], driver="gelsd").solution
            worst = max(worst, float((x @ solution - y[:, i]).norm() / (y[:, i] - y[:, i].mean(0)).norm()))
            maps.append(solution[:-1])
        return torch.stack(maps), worst

    def factors(self):
        """Per head the maps A [positions, d, width] and B, and the worst residual."""
        batch = self.x.shape[0]
        heads = self.q.shape[0] // batch
        q = self.q.double().reshape(batch, heads, *self.q.shape[1:])
        k = self.k.double().reshape(batch, heads, *self.k.shape[1:])
        a, ra = zip(*(self.affine(q[:, h]) for h in range(heads)))
        b, rb = zip(*(self.affine(k[:, h]) for h in range(heads)))
        return torch.stack(a), torch.stack(b), max(ra + rb)

    def key_heads(self):
        batch = self.x.shape[0]
        k = self.k.reshape(batch, -1, *self.k.shape[1:])
        return len({tuple(k[0, h, :, :].flatten().tolist()) for h in range(k.shape[1])})


def run(model, forward, is_attention, seed, sequence_first=False):
    """Runs `forward()`; returns the calls of the modules for which `is_attention(name, module)`, in order.
    `sequence_first`: the attention modules take hidden states [positions, batch, d], not [batch, positions, d]."""
    model.eval()
    names = {m: n for n, m in model.named_modules()}
    generator = torch.Generator().manual_seed(seed)
    calls, active, norms, handles = [], [], [], []

    def enter(module, args, kwargs):
        key = "hidden_states" if "hidden_states" in kwargs else None
        hidden = kwargs[key] if key else args[0]
        d = hidden.shape[-1]
        outer, inner = (hidden.shape[1], hidden.shape[0]) if sequence_first else (hidden.shape[0], hidden.shape[1:-1].numel())
        x = torch.randn(outer, inner, d, generator=generator, dtype=torch.float64)
        earlier = next((c for c in calls if c.module is module), None)
        call = Call(module, names[module], x)
        if earlier is None:
            calls.append(call)
        call = call if earlier is None else earlier
        # the norm whose output this very tensor is, by its memory
        call.norms.append(next((m for m, out in reversed(norms) if out.data_ptr() == hidden.data_ptr()
                                and out.numel() == hidden.numel()), None))
        active.append(call)
        new = (x.transpose(0, 1) if sequence_first else x).reshape(hidden.shape).to(hidden.dtype)
        if key:
            return args, {**kwargs, key: new}
        return (new, *args[1:]), kwargs

    def leave(module, args, output):
        active.pop()

    def normed(module, args, output):
        if active:  # inside an attention: leave the normaliser out, keep the gain
            x = args[0]
            if isinstance(module, torch.nn.LayerNorm) or "LayerNorm" in type(module).__name__:
                return x * module.weight
            return output * statistics(x, module, False)[1]
        norms.append((module, output))

    for name, module in model.named_modules():
        if is_attention(name, module):
            handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(module.register_forward_hook(leave))
        elif is_norm(module):
            handles.append(module.register_forward_hook(normed))
    with torch.no_grad(), Products(lambda a, b: active and active[-1].see(a, b)):
        forward()
    for h in handles:
        h.remove()
    return [c for c in calls if c.q is not None]


def directionality(m, gamma=GAMMA):
    """(Definition, Excess); and the smallest relative distance of a norm from the threshold."""
    out, near = [], 1.0
    for sample in (False, True):
        sums = []
        for norms in (m.norm(dim=1), m.norm(dim=0)):
            t = norms.mean() + gamma * norms.std(correction=1 if sample else 0)
            near = min(near, float(((norms - t).abs() / t).min()))
            over = norms[norms > t]
            sums.append(float((over - t).sum() if sample else over.sum()))
        r, c = sums
        out.append((r - c) / (r + c) if r + c > 0 else 0.0)
    return out[0], out[1], near


def scores(m):
    s = float((m * m.T).sum() / (m * m).sum())
    definition, excess, near = directionality(m)
    return [round(v, 8) for v in (s, definition, excess)], near


def measure(a, b, i, j, g=None):
    """Whole-layer and per-head scores of the form between positions i and j."""
    forms = a[:, i] @ b[:, j].transpose(1, 2)
    if g is not None:
        forms = g[:, None] * forms * g[None, :]
    whole, near = scores(forms.sum(0))
    heads = [scores(f) for f in forms]
    return {"layer": whole, "heads": [h[0] for h in heads], "near": float(f"{min([near] + [h[1] for h in heads]):.2e}")}
