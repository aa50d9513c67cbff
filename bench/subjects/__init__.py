"""One module per question; each measures it and says whether Holdfast's target was met."""
