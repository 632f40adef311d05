/** A program to start. */
export interface ProgramSpec {
  /**
   * Program and arguments; the program as written when it holds a slash, else looked up in PATH. No shell reads them.
   */
  readonly command: readonly [string, ...string[]]
  /** Beside PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME of the node. */
  readonly env: Readonly<Record<string, string>>
  /** Absolute. */
  readonly cwd: string
}

/** A program that runs, as a process group of its own. */
export interface RunningProgram {
  /** Writes to its standard input; resolves when the system took it. @throws Error when the program reads no more. */
  write(text: string): Promise<void>
  /** Resolves when its first process is gone: how it ended, with the tail of its stderr, for people. */
  readonly exited: Promise<string>
  /** Ends the whole group (SIGTERM, then SIGKILL) and resolves when no process of it runs. Idempotent. */
  end(): Promise<void>
}

/** Starts programs that stay up between tasks. None of them outlives the node, however the node ends. */
export interface ProgramStarter {
  /**
   * `onOutput` gets the bytes of the program's standard output, in order.
   * @throws Error when it cannot be started
   */
  start(program: ProgramSpec, onOutput: (chunk: Uint8Array) => void): Promise<RunningProgram>
}
