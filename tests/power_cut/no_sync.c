/* A disk that nobody syncs: with this library preloaded each call that makes data durable does nothing and succeeds. */
int fsync(int descriptor) { (void)descriptor; return 0; }
int fdatasync(int descriptor) { (void)descriptor; return 0; }
int syncfs(int descriptor) { (void)descriptor; return 0; }
int msync(void *start, unsigned long length, int flags) { (void)start, (void)length, (void)flags; return 0; }
