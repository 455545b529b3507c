// Notes which pages of the program's code are run, each once and in order: a shared object for LD_PRELOAD.
//
// No page of the code may be run at first; the fault that comes of it is noted in $TOUCHED, and allows that page.

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

static unsigned long first, last, base;
static int notes;

static void note(unsigned long page) {
  char text[17];
  int at = sizeof text;
  text[--at] = '\n';
  for (; page; page >>= 4) text[--at] = "0123456789abcdef"[page & 15];
  if (write(notes, text + at, sizeof text - at) < 0) _exit(70);
}

static void fault(int signal_number, siginfo_t *info, void *context) {
  (void)context;
  unsigned long page = (unsigned long)info->si_addr & ~(PAGE - 1);
  if (page < first || page >= last) {
    signal(signal_number, SIG_DFL);
    return;
  }
  mprotect((void *)page, PAGE, PROT_READ | PROT_EXEC);
  note((page - base) / PAGE);
}

__attribute__((constructor)) static void begin(void) {
  const char *place = getenv("TOUCHED");
  if (!place) return;
  char program[4096], line[8192];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length < 0) return;
  program[length] = 0;
  notes = open(place, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  // Programs that it starts are not watched.
  unsetenv("LD_PRELOAD");
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long from, to, offset;
    char access[8];
    if (sscanf(line, "%lx-%lx %7s %lx", &from, &to, access, &offset) != 4 || !strstr(line, program)) continue;
    if (!base) base = from - offset;
    if (access[2] == 'x') first = from, last = to;
  }
  if (maps) fclose(maps);
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  mprotect((void *)first, last - first, PROT_NONE);
}
