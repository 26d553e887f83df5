"""From executed chapters to the published site: stage, render, shrink, assemble, swap."""
