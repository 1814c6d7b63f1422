public import Tidemark
internal import TidemarkEngine

extension Store.Configuration {
  /// The same on a simulated disk, with a clock and chance that repeat and without threads, so
  /// that a run with the same seeds repeats exactly.
  ///
  /// ```swift
  /// let disk = SimulatedFileSystem(seed: 42)
  /// let configuration = Store.Configuration(durability: .durable).simulated(on: disk)
  /// let store = try await Store.open(at: "notes.tidemark", configuration: configuration)
  /// ```
  /// Async calls of such a store do their work on the thread that calls them.
  /// - Parameters:
  ///   - disk: where the files are; a store in memory leaves it alone.
  ///   - clock: where the time comes from.
  ///   - random: where ids, salts, seeds and keys come from.
  public func simulated(
    on disk: SimulatedFileSystem, clock: ManualClock = ManualClock(),
    random: SeededRandom = SeededRandom(seed: 0)
  ) -> Store.Configuration {
    var configuration = self
    configuration.environment = Store.Environment(
      fileSystem: disk, clock: clock, random: random)
    configuration.usesThreads = false
    return configuration
  }
}
