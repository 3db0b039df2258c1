"""Figure 5 of Ding et al.: objective of the SVM against epsilon.

The vertical range is the paper's, [0, 2.5]. It reports that near epsilon = 1 OutPert lies below
GRPUA, and GRPUA where SgdPert is. With the printed noise GRPUA is at NonPriv's value for every
epsilon, since that noise lacks a factor of 2n, and neither is found.

    python examples/paper/plot_ding_figure5.py figure5.png          # from results/ding.json
    python examples/paper/plot_ding_figure5.py figure5.png --fast   # a sample, measured now
"""

from ding import show_figure

if __name__ == "__main__":
    show_figure(5, __doc__)
