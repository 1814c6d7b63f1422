import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Short forms of the campaigns; the long ones are commands.
struct CampaignTests {
  private func runModel(seed: UInt64, steps: Int, profile: ScriptProfile? = nil) throws {
    let script = Script(seed: seed, count: steps, profile: profile)
    do { try Self.play(script) } catch {
      let shortest = shrink(script, attempts: 60) { candidate in
        do { try Self.play(candidate) } catch { return true }
        return false
      }
      Issue.record("seed \(seed): \(error)\n\(shortest)")
    }
  }

  static func play(_ script: Script) throws {
    let disk = SimulatedFileSystem(seed: script.seed)
    var runner = ScriptRunner(disk: disk, seed: script.seed)
    try runner.open()
    for step in script.steps { try runner.run(step) }
    try runner.checkAll()
  }

  @Test("the store answers like the model, whatever is done to it", arguments: 1...10)
  func model(seed: Int) throws {
    try runModel(seed: UInt64(seed), steps: 80)
  }

  @Test("the store answers like the model between crashes", arguments: 101...110)
  func modelWithCrashes(seed: Int) throws {
    let profile = ScriptProfile.all[seed % ScriptProfile.all.count].withCrashes()
    try runModel(seed: UInt64(seed), steps: 80, profile: profile)
  }

  @Test("a power cut at any call leaves a prefix with all that was durable", arguments: 201...204)
  func crashSweep(seed: Int) throws {
    let profile = ScriptProfile.all[seed % ScriptProfile.all.count]
    let script = Script(seed: UInt64(seed), count: max(5, 20 / profile.cost), profile: profile)
    let sweep = CrashSweep(script)
    let calls = try sweep.countCalls()
    let step = max(1, calls / 15)
    _ = try sweep.run(calls: stride(from: 1, through: calls, by: step))
  }

  @Test("crashes during recovery do no harm either", arguments: 301...304)
  func crashInRecovery(seed: Int) throws {
    let profile = ScriptProfile.all[seed % ScriptProfile.all.count]
    let script = Script(seed: UInt64(seed), count: max(5, 20 / profile.cost), profile: profile)
    let sweep = CrashSweep(script, depth: 3)
    let calls = try sweep.countCalls()
    let step = max(1, calls / 15)
    _ = try sweep.run(calls: stride(from: 1, through: calls, by: step))
  }

  @Test("a crash between forgetting an unfinished segment and removing it does no harm")
  func unfinishedSegment() throws {
    // Frames of a batch that was never finished stood in the file and were taken for lost ones.
    for (seed, call) in [(3, 46), (5, 31)] as [(UInt64, Int)] {
      let profile = ScriptProfile.all[Int(seed) % ScriptProfile.all.count]
      let script = Script(seed: seed, count: 24, profile: profile)
      _ = try CrashSweep(script, depth: 3).run(calls: [call])
    }
  }
}
