"""What files of a zoo share."""

width = 16
