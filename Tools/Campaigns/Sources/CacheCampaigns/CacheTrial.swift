import TidemarkTestKit

/// A promise of the caches that a trial has seen broken.
public struct CacheViolation: Error, CustomStringConvertible {
  /// The promise and what happened instead, with the steps before.
  public let description: String

  init(_ message: String, after steps: [String] = []) {
    description = ([message] + steps.map { "  " + $0 }).joined(separator: "\n")
  }
}

/// A kind of trial.
public enum CacheTrial: String, CaseIterable, Sendable {
  /// Every call of a cache and its store while a source is being asked.
  case reads
  /// Every call of an HTTP cache while a server is being asked.
  case exchanges
  /// Answers with random fields, against a model of RFC 9111.
  case rules
  /// Bounded caches of stores that are opened again and again.
  case launches

  /// Runs the trial on one seed, where ``TaskQueue`` runs the tasks.
  /// - Parameters:
  ///   - seed: equal seeds make the same steps.
  ///   - steps: how many steps are made.
  /// - Returns: how often each kind of event came up.
  /// - Throws: ``CacheViolation``, or an error of the store that no step has asked for.
  public func run(seed: UInt64, steps: Int? = nil) async throws -> [String: Int] {
    let chance = SeededGenerator(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ seed)
    switch self {
    case .reads:
      let trial = try ReadTrial(chance)
      return try await trial.run(steps ?? 40)
    case .exchanges:
      let trial = try ExchangeTrial(chance)
      return try await trial.run(steps ?? 30)
    case .rules:
      let trial = try RuleTrial(chance)
      return try await trial.run(steps ?? 40)
    case .launches: return try await LaunchTrial(chance).run(steps ?? 12)
    }
  }
}
