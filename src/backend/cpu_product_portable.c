#define KERNEL      mt_product_kernel_portable
#define KERNEL_NAME "portable"
#define USABLE      true
#include "backend/cpu_product_body.h"
