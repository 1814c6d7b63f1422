internal import TidemarkTestKit

/// Several stores that replicate with one REST back end by a peer of requests, while answers are
/// lost, boxes on the way answer instead, lists expire, processes die, and stores are restored and
/// copied: in simulated time, one call after the other, so that the same seed does the same.
///
/// The promises: an idempotency key stands for one change; nothing is created twice or written
/// over a record of another key; nothing is sent before what it comes after; and once everybody
/// could sync for some rounds, all hold what the back end holds, and every write has come to it
/// that nothing took the place of, but for those that it refuses or fails on.
public struct RestSimulation: Sendable {
  /// The script of events that ``run(narrating:)`` carries out.
  public var script: RestScript

  /// Creates a simulation of the script that a seed makes.
  public init(seed: UInt64) { script = RestScript(seed: seed) }

  /// Creates a simulation of a given script, for example one from an earlier failure.
  public init(_ script: RestScript) { self.script = script }

  /// Carries out the script and checks the promises of replication.
  /// - Parameter tell: called with each event as a line of text, to find the cause of a failure.
  /// - Throws: ``RestViolation`` when a promise was broken.
  public func run(
    narrating tell: (@Sendable (String) -> Void)? = nil
  ) async throws(RestViolation) {
    var index = 0
    do {
      let world = try RestWorld(script, tell)
      for event in script.events {
        try await world.apply(event)
        index += 1
      }
      try await world.finish()
    } catch {
      let place =
        index < script.events.count ? "event \(index + 1), \(script.events[index])" : "the end"
      throw RestViolation(script: script, message: "\(place): \(error)")
    }
  }

  /// Looks for a shorter script with a failure, by leaving out events.
  /// - Parameters:
  ///   - violation: the failure to shorten.
  ///   - attempts: how many scripts are tried at most.
  /// - Returns: the failure with the shortest script found.
  public static func shortest(
    _ violation: RestViolation, attempts: Int = 2000
  ) async -> RestViolation {
    var best = violation
    var left = attempts
    var size = max(1, best.script.events.count / 2)
    while left > 0 {
      let before = best.script.events.count
      var end = before
      while end > 0, left > 0 {
        let start = max(0, end - size)
        var candidate = best.script
        candidate.events.removeSubrange(start..<end)
        left -= 1
        do throws(RestViolation) {
          try await RestSimulation(candidate).run()
        } catch  where error.kind == violation.kind {
          best = error
        } catch {}
        end = start
      }
      if size == 1, best.script.events.count == before { break }
      size = max(1, size / 2)
    }
    return best
  }
}

/// A broken promise of replication with a REST back end, with the script that shows it.
public struct RestViolation: Error, Sendable, CustomStringConvertible {
  /// The script that broke the promise.
  public var script: RestScript
  /// The promise that was broken, and the event at which the simulation noticed.
  public var message: String

  /// The failure without names and numbers.
  var kind: [Substring] {
    (message.split(separator: ": ").last ?? "").split(separator: " ")
      .filter { $0.allSatisfy { $0.isLetter } }
  }

  /// The failure as a text that can be kept in a file and run again.
  public var description: String { "# \(message)\n\(script)" }
}
