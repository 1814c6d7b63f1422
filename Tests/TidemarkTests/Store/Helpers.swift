import Tidemark
import TidemarkTestKit

/// A disk and a clock on which a test opens its store, again and again if it wants.
struct Machine {
  let disk = SimulatedFileSystem(seed: 1)
  let clock = ManualClock()

  func configuration(
    _ access: Store.Access = .create, durability: Durability = .buffered, usesThreads: Bool = false
  ) -> Store.Configuration {
    Store.Configuration(
      access: access, durability: durability,
      environment: Store.Environment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: 2)),
      usesThreads: usesThreads)
  }

  /// Opens the store; without threads, unless they are asked for, so that a run repeats.
  func open(
    _ access: Store.Access = .create, durability: Durability = .buffered, usesThreads: Bool = false
  ) throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: configuration(
        access, durability: durability,
        usesThreads: usesThreads))
  }
}

extension [UInt8] {
  var text: String { String(decoding: self, as: UTF8.self) }
}

extension StoreReader {
  /// The keys of a query as text.
  func found(_ query: EntryQuery = EntryQuery()) throws -> [String] {
    var keys: [String] = []
    var rows = try self.keys(query)
    while let key = try rows.next() { keys.append(key.text) }
    return keys
  }

  /// The whole state as text.
  func state() throws -> [String: String] {
    var state: [String: String] = [:]
    var rows = try entries()
    while let entry = try rows.next() { state[entry.key.text] = entry.value.text }
    return state
  }
}

/// The code of the error that a call ends with; nil when it does not.
func code(_ body: () throws -> Void) -> TidemarkError.Code? {
  do { try body() } catch { return (error as? TidemarkError)?.code }
  return nil
}

/// The code of the error that a call ends with; nil when it does not.
func code(_ body: () async throws -> Void) async -> TidemarkError.Code? {
  do { try await body() } catch { return (error as? TidemarkError)?.code }
  return nil
}
