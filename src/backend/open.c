#include "backend/backend.h"

mt_status mt_backend_open(mt_backend_choice choice, mt_backend **backend_out,
                          mt_devices *devices_out)
{
  if (choice == MT_BACKEND_CUDA)
    return mt_fail(MT_ERR_INPUT,
                   "this build has no CUDA backend: use --backend cpu (or auto)");
  *devices_out = (mt_devices){.n = 0};
  return mt_backend_cpu(backend_out);
}
