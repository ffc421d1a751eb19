/* Linked into sanitized programs: plugins (Open MPI's) stay loaded, so that the leak
 * sanitizer can name what they leave behind, and tests/lsan.supp can tell it from ours. */
int dlclose(void *library);

int dlclose(void *library)
{
  (void)library;
  return 0;
}
