declare module 'fs-native-extensions' {
  const extensions: {
    /**
     * Takes the kernel's lock of a file (OFD lock on Linux, `flock` on macOS) without waiting; false: another one has
     * it. The file is open for reading and writing.
     */
    tryLock(fd: number): boolean
  }
  export default extensions
}
