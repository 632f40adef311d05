import type { TestMesh } from './nodes.js'

/** What `doctor --json` prints, and its exit code. */
export interface Diagnosis {
  readonly code: number | null
  readonly ok: boolean
  readonly checks: readonly {
    readonly name: string
    readonly result: string
    readonly text: string
    readonly next: readonly string[]
  }[]
  readonly repairs: readonly { readonly name: string; readonly lost: string | null }[]
}

/** Runs `doctor` on a home. */
export async function doctor(
  mesh: Pick<TestMesh, 'run'>,
  home: string,
  ...more: readonly string[]
): Promise<Diagnosis> {
  const { code, stdout, stderr } = await mesh.run(['--home', home, 'doctor', '--json', ...more])
  if (stdout === '') throw new Error(stderr)
  return { ...(JSON.parse(stdout) as Omit<Diagnosis, 'code'>), code }
}

/** Names of the checks that failed. */
export function failing({ checks }: Pick<Diagnosis, 'checks'>): string[] {
  return checks.filter((one) => one.result === 'fail').map((one) => one.name)
}
