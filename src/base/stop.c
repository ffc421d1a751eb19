#include "base/stop.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static volatile sig_atomic_t stop_signal;

static void remember(int number)
{
  if (number == SIGINT && stop_signal == SIGINT) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  stop_signal = number;
}

void mt_stop_install(void)
{
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
}

bool mt_stop_requested(void)
{
  return stop_signal != 0;
}

int mt_stop_signal(void)
{
  return stop_signal;
}
