"""Figure 3 of Ding et al.: objective of logistic regression against epsilon.

The vertical range is the paper's, [0, 2.5]. The penalty alone puts a noise of 66 in each of 103
weights far beyond it: OPERA stays finite as epsilon falls, since delta = 0.001 bounds the noise,
but does not come near NonPriv, where the paper shows it. GRPUA as printed does: its noise in all
n^2 steps adds up to less than a thousandth in each weight, since it lacks a factor of 2n. It is not
private (docs/errata.md). Of the sound methods only skdp's GRPUA, with all rows in each of few
steps, stays in the range at every epsilon.

    python examples/paper/plot_ding_figure3.py figure3.png          # from results/ding.json
    python examples/paper/plot_ding_figure3.py figure3.png --fast   # a sample, measured now
"""

from ding import show_figure

if __name__ == "__main__":
    show_figure(3, __doc__)
