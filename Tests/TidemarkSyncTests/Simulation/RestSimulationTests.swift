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

  /// The shortest scripts that failed when a promise was not kept, or a mistake was planted.
  static let scripts = [
    // Restored and copied stores, whose sequences are used twice.
    "rest 1 2 5 4 0 49 | create 0 0 | sync 0 0 | backUp 0 0 | edit 0 0 | sync 0 0 | restore 0 0 "
      + "| create 0 0 | sync 0 0 | sync 1 0",
    "rest 1 2 5 1 1 1329 | copy 1 15 | sync 1 0 | create 1 14",
    "rest 1 2 1 1 1 495 | create 1 22 | child 1 22 | copy 1 19 | edit 2 15",
    "rest 1 2 5 4 0 50 | create 0 0 | copy 0 0 | edit 0 0 | edit 2 0 | sync 0 0 | sync 2 0 "
      + "| restore 0 0 | edit 0 0",
    // A box on the way answers for the back end.
    "rest 1 2 5 4 0 51 | create 0 0 | box 0 4 | sync 0 0 | edit 0 0 | sync 0 0 | sync 0 0",
    "rest 1 2 5 4 0 50 | create 0 0 | sync 0 0 | delete 0 0 | box 0 4 | sync 0 0 | sync 0 0",
    // A list without deletes, after tokens have expired.
    "rest 1 2 2 4 0 35 | create 0 0 | create 0 0 | create 0 0 | sync 0 0 | sync 1 0 | delete 0 1 "
      + "| sync 0 0 | expire 0 0",
    "rest 1 2 2 4 0 42 | webCreate 0 0 | webCreate 0 0 | sync 0 0 | webDelete 0 0 | expire 0 0 "
      + "| dieAfter 0 1",
    // A list that says for ever that there is more.
    "rest 1 2 3 4 1 1142 | stuck 1 12 | sync 1 0",
    // One record that is always answered with 500.
    "rest 1 3 2 4 2 1422 | poison 0 9 | create 0 9",
    "rest 1 2 3 4 0 1847 | poison 0 16 | create 1 0 | sync 0 0 | edit 0 1",
    // Groups, which such a back end does not take.
    "rest 1 2 3 4 0 51 | group 0 0 | create 0 0 | sync 0 0 | child 0 0",
    // Changes that come after others.
    "rest 1 2 5 64 0 454 | bad 0 13 | child 0 19",
    "rest 1 4 1 64 2 1989 | create 3 21 | child 3 17",
    // Sign-outs.
    "rest 1 2 3 4 0 51 | create 0 0 | sync 0 0 | edit 0 0 | signOut 0 2 | create 0 0 | sync 0 0",
    "rest 1 2 3 4 0 50 | create 0 0 | child 0 0 | dieBefore 0 1 | signOut 0 0 | sync 0 0",
    "rest 1 2 3 4 0 51 | create 0 0 | create 0 0 | signOut 0 3 | webEdit 0 0 | sync 0 0",
    // Conflicts, after which a change is sent again.
    "rest 1 2 3 4 0 245 | create 0 0 | sync 0 0 | edit 0 0 | webDelete 0 0 | sync 0 0",
    // Answers that are repeated, of records that were deleted since.
    "rest 1 2 50 2 2 283 | create 2 0 | copy 1 20 | backUp 0 22 | sync 0 0 "
      + "| webDelete 0 16 | restore 3 20",
    "rest 1 2 50 64 1 855 | create 1 14 | loseAnswer 1 7 | webDelete 1 2",
    // Conflicts in which the id of what is gone was kept.
    "rest 1 4 2 64 0 1895 | share 2 18 | sync 2 0 | expire 1 5 | webDelete 0 2 "
      + "| sync 2 0 | sync 2 20 | share 2 15",
    // A create that was lost with its answer, and edited by others.
    "rest 1 3 50 1 2 55 | create 1 11 | dieAfter 1 1 | create 1 22 | loseAnswer 1 20 "
      + "| sync 3 0 | edit 0 17",
    // More failing records than a batch has room for.
    "rest 1 2 3 1 2 867 | group 3 23 | poison 3 3 | poison 1 0 | share 3 17",
    // A copy's older change, which takes the place of a newer one.
    "rest 1 2 2 64 0 694 | create 1 21 | copy 3 15 | sync 1 9 | edit 1 0",
    "rest 1 3 50 4 2 694 | share 3 13 | copy 0 15 | edit 0 11 | copy 0 15",
    "rest 1 4 50 2 1 1979 | share 3 20 | toggle 3 10 | copy 3 16 | toggle 3 17 "
      + "| copy 3 12",
    // A backlog of versions of a key with an edit that waits.
    "rest 1 4 50 1 0 1786 | share 1 5 | sync 1 0 | sync 3 2 | loseAnswer 2 7 "
      + "| webEdit 2 18 | webEdit 0 20 | edit 3 18 | sync 3 0 | edit 2 0 | webDelete 2 1 "
      + "| signOut 3 2 | share 3 20",
    "rest 1 2 5 64 0 795 | create 3 16 | sync 1 8 | group 3 7 | create 3 23 "
      + "| delete 3 17 | expire 0 8 | sync 1 4 | create 1 5 | loseAnswer 3 14 | poison 1 14",
  ]

  @Test(
    "each recorded script on which the simulator once failed runs without a violation",
    arguments: scripts)
  func script(_ line: String) async throws {
    let text = line.replacing(" | ", with: "\n")
    try await RestSimulation(RestScript(parsing: text)).run()
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
