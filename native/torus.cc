#include "torus.h"
