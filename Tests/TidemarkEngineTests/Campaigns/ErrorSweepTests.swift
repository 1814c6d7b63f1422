import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Short forms of campaign 3; the long one is a command.
@Suite("Errors at every call")
struct ErrorSweepTests {
  /// Injects at a few calls of a script, other ones for every seed.
  private func sweep(seed: UInt64, steps: Int, calls count: Int) throws -> ErrorSweep.Report {
    let profile = ScriptProfile.all[Int(seed) % ScriptProfile.all.count]
    let sweep = ErrorSweep(Script(seed: seed, count: steps, profile: profile))
    let trace = try sweep.trace()
    var generator = SeededGenerator(seed: seed)
    var calls: Set<Int> = []
    for _ in 0..<count { calls.insert(1 + generator.int(below: trace.count)) }
    return try sweep.run(calls: calls.sorted(), of: trace)
  }

  @Test("an error at any call is told as it is, and the store works on", arguments: 401...406)
  func errors(seed: Int) throws {
    let report = try sweep(seed: UInt64(seed), steps: 10, calls: 4)
    #expect(report.injected.total > 0, "seed \(seed) injected nothing")
    #expect(report.errorsSeen > 0, "seed \(seed) met no error")
  }

  @Test("a full disk at any step is told, and the same handle goes on", arguments: 411...412)
  func fullDisk(seed: Int) throws {
    let profile = ScriptProfile.all[seed % ScriptProfile.all.count]
    let sweep = ErrorSweep(Script(seed: UInt64(seed), count: 16, profile: profile))
    let report = try sweep.run(fullFrom: stride(from: 0, to: 16, by: 5))
    #expect(report.injected[.diskFull] > 0, "seed \(seed) never met the end of the disk")
    #expect(report.resumed > 0, "seed \(seed) never went on")
  }

  @Test("an error while a store is created leaves nothing that stands in the way")
  func creation() throws {
    let sweep = ErrorSweep(Script(seed: 1, count: 2, profile: .tiny))
    let trace = try sweep.trace()
    let report = try sweep.run(calls: 1...20, of: trace)
    #expect(report.injected[.error] > 50)
    #expect(report.injected[.shortTransfer] > 0)
    #expect(report.injected[.syncLeavesPagesClean] > 0)
    #expect(report.injected[.syncRevertsPages] > 0)
    #expect(report.injected[.syncFailsLate] > 0)
  }

  @Test(
    "a sorted run of entries that a sync lied about is not believed when their sequences come back")
  func lyingSync() throws {
    let script = try Script(parsing: "seed 25\nscan\nput t:t t:\nsnapshot\n")
    let sweep = ErrorSweep(script)
    let trace = try sweep.trace()
    let syncs = trace.indices.filter { trace[$0].operation == .sync }.map { $0 + 1 }
    let report = try sweep.run(calls: syncs, of: trace)
    #expect(report.injected[.syncFailsLate] > 0)
  }
}
