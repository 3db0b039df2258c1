"""Figure 4 of Ding et al.: accuracy of the SVM against epsilon.

As in Figure 2: the hinge's smoothness 1/(2h) = 1 hardly changes the printed sensitivity, 5005/n
in place of 5020/n, and below epsilon = 1e-3 delta = 0.001 sets the noise by itself. SgdPert, whose
noise is sound, is a coin there too; GRPUA as printed is not private, and as accurate as NonPriv.

    python examples/paper/plot_ding_figure4.py figure4.png          # from results/ding.json
    python examples/paper/plot_ding_figure4.py figure4.png --fast   # a sample, measured now
"""

from ding import show_figure

if __name__ == "__main__":
    show_figure(4, __doc__)
