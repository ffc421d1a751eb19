#define KERNEL      mt_lda_kernel_portable
#define KERNEL_NAME "portable"
#define USABLE      true
#define GROUP       2
#include "lda/kernel_body.h"
