"""Public features of images: functions of one image at a time that no private row has shaped."""
