"""Public features of images: functions of one image at a time, independent of private rows."""
