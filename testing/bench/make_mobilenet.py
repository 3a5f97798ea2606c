# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the model of the row tflite: python3 make_mobilenet.py [FILE]. Needs tensorflow with its converter.

MobileNetV2 for pictures of 224 x 224, in 32-bit floats, with any number of pictures. The weights are random: the time of a run does
not depend on them, and nothing is downloaded.
"""

import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf

file = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "target" / "mobilenet_v2.tflite")
tf.keras.utils.set_random_seed(7)
network = tf.keras.applications.MobileNetV2(weights=None)
image = tf.keras.Input((224, 224, 3), name="image")
with tempfile.TemporaryDirectory() as place:
    tf.keras.Model(image, network(image)).export(place, verbose=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(tf.lite.TFLiteConverter.from_saved_model(place).convert())
print(file)
