/// Steps to carry out on a store and on a model, made from a seed.
///
/// ```swift
/// let script = Script(seed: 42)
/// if fails(script) {
///   print(shrink(script, fails: fails))        // the shortest that still fails
/// }
/// ```
/// A script's ``description`` is text with one step a line, and ``init(parsing:)`` reads it back,
/// so that a failure can be kept in a file and run again.
public struct Script: Sendable, Hashable {
  /// The steps, in the order in which a test carries them out.
  public var steps: [ScriptStep]
  /// The seed from which the script was made. The runner also draws its own random numbers from it.
  public var seed: UInt64

  /// Creates a script from given steps.
  /// - Parameters:
  ///   - seed: the seed for the runner's own random numbers.
  ///   - steps: the steps, in order.
  public init(seed: UInt64 = 0, steps: [ScriptStep]) {
    self.seed = seed
    self.steps = steps
  }

  /// Makes up a script from a seed.
  /// - Parameters:
  ///   - seed: decides every step.
  ///   - count: how many steps the script has.
  ///   - profile: which steps are frequent; by default the seed picks a profile.
  public init(seed: UInt64, count: Int = 100, profile: ScriptProfile? = nil) {
    var generator = ScriptGenerator(seed: seed, profile: profile)
    self.seed = seed
    steps = (0..<max(0, count)).map { _ in generator.next() }
  }

  /// How often each kind of step occurs in the script.
  public var kinds: [ScriptStep.Kind: Int] {
    steps.reduce(into: [:]) { $0[$1.kind, default: 0] += 1 }
  }
}
