"""What a reader sees of a chapter, and what they would stumble over there."""
