import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncTestKit

@Suite("Simulated replication with a REST back end")
struct RestSimulationTests {
  @Test(
    "nothing is lost, doubled or written over, whatever befalls devices, answers and lists",
    arguments: 0..<10 as Range<UInt64>)
  func holds(part: UInt64) async {
    for seed in part * 40 + 1...part * 40 + 40 {
      do throws(RestViolation) {
        try await RestSimulation(seed: seed).run()
      } catch {
        Issue.record("seed \(seed): \(await RestSimulation.shortest(error, attempts: 300))")
        return
      }
    }
  }

  @Test("the same seed does the same", arguments: [1, 2, 5] as [UInt64])
  func repeats(seed: UInt64) async {
    #expect(await story(seed) == story(seed))
  }

  private func story(_ seed: UInt64) async -> [String] {
    let lines = Lock<[String]>([])
    do throws(RestViolation) {
      try await RestSimulation(seed: seed).run { line in lines.withLock { $0.append(line) } }
    } catch { return [error.message] }
    return lines.withLock { $0 }
  }

  @Test("a script is read back from its text", arguments: 1...4 as ClosedRange<UInt64>)
  func text(seed: UInt64) throws {
    let script = RestScript(seed: seed)
    #expect(try RestScript(parsing: "\(script)") == script)
  }

  @Test(
    "an own change that is listed behind another's is what all devices end up with",
    arguments: ["toggle 3 23", "edit 3 0", "delete 3 0"])
  func listOfVersions(event: String) async throws {
    // The change is under way while somebody else writes, in a list of every version.
    let script = """
      rest 1 4 3 1 2 574
      share 3 6
      sync 3 0
      busy 3 19
      bad 2 6
      sync 2 0
      \(event)
      sync 3 0
      edit 2 17
      """
    try await RestSimulation(RestScript(parsing: script)).run()
  }
}
