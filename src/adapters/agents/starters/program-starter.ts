import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { ProgramSpec, ProgramStarter, RunningProgram } from '../../../ports/programs.js'
import { findProgram, type Launched, launch } from '../process/command-launch.js'
import { agentEnvironment, type Environment } from '../files/environment.js'
import { TailOutput } from '../process/output.js'
import { KILL_AFTER_MS, type ProcessGroups } from '../process/process-groups.js'

/** Bytes of stderr in the reason of a program that ended. */
const STDERR_TAIL_BYTES = 2048

/** Starts programs that stay up, each recorded and guarded like the processes of agents. */
export function programStarter(groups: ProcessGroups, ownEnv: Environment): ProgramStarter {
  return {
    async start({ command: [name, ...args], env: named, cwd }: ProgramSpec, onOutput) {
      const env = agentEnvironment(ownEnv, named)
      if (!fs.existsSync(cwd)) throw new Error(`the directory ${cwd} does not exist`)
      const program = findProgram(name, env, cwd)
      if (program === null) throw new Error(`the program ${name} was not found or may not be executed`)
      const launched = await launch(groups, { program, args, env, cwd, requestId: null })
      launched.stdout.on('data', onOutput)
      launched.progress.resume()
      return follow(launched, groups)
    }
  }
}

function follow(launched: Launched, groups: ProcessGroups): RunningProgram {
  const { stdin, stdout, stderr, progress, processGroup } = launched
  const tail = new TailOutput(STDERR_TAIL_BYTES)
  stderr.on('data', (chunk: Uint8Array) => tail.push(chunk))
  const exited = launched.exited.then(async ({ code, signal }) => {
    // Processes that it left in its group serve nobody any more.
    await groups.end(processGroup)
    // Its last output may still arrive; a process that left the group may hold the pipes.
    await Promise.race([closed(stderr), pause(KILL_AFTER_MS, undefined, { ref: false })])
    for (const stream of [stdout, stderr, progress]) stream.destroy()
    const words = tail.text()
    return `${signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`}${words === '' ? '' : `: ${words}`}`
  })
  return {
    exited,
    write: (text) =>
      new Promise((resolve, reject) => {
        stdin.write(text, (error) => (error === null || error === undefined ? resolve() : reject(error)))
      }),
    async end() {
      await groups.end(processGroup)
      await exited
    }
  }
}

function closed(stream: Launched['stderr']): Promise<unknown> {
  return stream.closed ? Promise.resolve() : new Promise((resolve) => stream.once('close', resolve))
}
