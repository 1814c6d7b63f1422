internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkTestKit

/// Several stores that replicate with one server over a network that loses, doubles, reorders and
/// delays, while processes die, disks lose what was not synced, copies are restored and clocks
/// jump: all in one thread and in simulated time, so that the same seed does the same.
///
/// ```swift
/// do {
///   print(try SyncSimulation(seed: 42).run())
/// } catch {
///   print(error)                       // with the script, which can be kept and run again
/// }
/// ```
/// After every event it is checked that nothing was lost, doubled or brought back; in the end,
/// once everybody could talk to the server for as long as they liked, that all hold the same.
public struct SyncSimulation: Sendable {
  /// The script of events that ``run(narrating:)`` carries out.
  public var script: SyncScript

  /// Creates a simulation of the script that a seed makes.
  /// - Parameters:
  ///   - seed: decides every event.
  ///   - events: how many events the script has.
  ///   - profile: which events are frequent; by default the seed picks a profile.
  public init(seed: UInt64, events: Int = 500, profile: SyncProfile? = nil) {
    script = SyncScript(seed: seed, events: events, profile: profile)
  }

  /// Creates a simulation of a given script, for example one from an earlier failure.
  public init(_ script: SyncScript) { self.script = script }

  /// Carries out the script and checks the promises of replication after every event.
  /// - Parameter tell: called with each event as a line of text, to find the cause of a failure.
  /// - Returns: the counts of the run.
  /// - Throws: ``SyncViolation`` when a promise of replication was broken.
  @discardableResult
  public func run(
    narrating tell: ((String) -> Void)? = nil
  ) throws(SyncViolation) -> SyncSimulationReport {
    var index = 0
    do {
      let world = try SyncWorld(script)
      world.oracle.narrator = tell.map { SyncNarrator(tell: $0) }
      for event in script.events {
        world.oracle.narrator?.event(index, event)
        try world.apply(event)
        index += 1
      }
      try world.finish()
      return world.report
    } catch {
      let place =
        index < script.events.count ? "event \(index + 1), \(script.events[index])" : "the end"
      throw SyncViolation(script: script, message: "\(place): \(error)")
    }
  }

  /// Looks for a shorter script with a failure, by leaving out events.
  /// - Parameters:
  ///   - violation: the failure to shorten.
  ///   - attempts: how many scripts are tried at most.
  /// - Returns: the failure with the shortest script found.
  public static func shortest(_ violation: SyncViolation, attempts: Int = 2000) -> SyncViolation {
    var best = violation
    _ = violation.script.shortest(attempts: attempts) { candidate in
      do throws(SyncViolation) {
        try SyncSimulation(candidate).run()
        return false
      } catch {
        // Another failure may have another cause.
        guard error.kind == violation.kind else { return false }
        best = error
        return true
      }
    }
    return best
  }
}

/// A broken promise of replication, with the script that shows it.
public struct SyncViolation: Error, Sendable, CustomStringConvertible {
  /// The script that broke the promise.
  public var script: SyncScript
  /// The promise that was broken, and the event at which the simulation noticed.
  public var message: String

  /// The failure without names and numbers: failures of one kind are much alike.
  var kind: [Substring] {
    let words = (message.split(separator: ": ").last ?? "").split(separator: " ")
    return words.filter { $0.allSatisfy { $0.isLetter || $0 == "," } }
  }

  /// The failure as a text that can be kept in a file and run again.
  public var description: String { "# \(message)\n\(script)" }
}
