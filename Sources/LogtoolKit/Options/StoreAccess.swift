internal import Tidemark
internal import TidemarkEngine

/// Opens stores the way the tool does.
struct StoreAccess {
  let path: String
  let console: Console
  /// Files with the store's keys, if they are others than those for the whole command.
  private let keyFiles: [String]?

  init(_ path: String, _ console: Console, keyFiles: [String]? = nil) {
    self.path = path
    self.console = console
    self.keyFiles = keyFiles
  }

  private func encryption() throws(ToolError) -> Encryption? {
    if let keyFiles { return try KeyFile.encryption(keyFiles) }
    return try KeyFile.encryption(console)
  }

  private func open(_ access: Store.Access, newKey: Encryption? = nil) throws -> Store {
    var configuration = try configuration(access)
    configuration.engine.newKey = newKey
    return try Store.openBlocking(at: path, configuration: configuration)
  }

  /// The configuration by which a command opens the store; nothing is compacted unless it is asked
  /// for.
  ///
  /// The cache holds the decoded heads of several commits of thousands of entries. Replication
  /// looks entries up key by key, and without that room each lookup decodes its commit again.
  func configuration(_ access: Store.Access) throws(ToolError) -> Store.Configuration {
    var configuration = Store.Configuration(
      access: access, cacheBytes: 64 << 20, encryption: try encryption(),
      environment: console.storeEnvironment)
    configuration.compaction = .onRequest
    return configuration
  }

  /// Whether there is a store.
  func exists() throws -> Bool {
    do { return try read { _ in true } } catch let error as TidemarkError
      where error.code == .storeMissing
    { return false }
  }

  /// Calls `body` with the store, open for reading: no lock is taken and nothing is written.
  func read<R>(_ body: (Store) throws -> R) throws -> R {
    let store = try open(.readOnly)
    defer { try? store.blocking.close() }
    return try body(store)
  }

  /// Calls `body` with the store, open for writing, and closes it cleanly whatever happens.
  /// - Parameters:
  ///   - creates: whether a store is created when there is none.
  ///   - newKey: the key that the store is about to get.
  func write<R>(
    creates: Bool = false, newKey: Encryption? = nil, _ body: (Store) throws -> R
  ) throws -> R {
    let store = try open(creates ? .create : .write, newKey: newKey)
    let result: R
    do { result = try body(store) } catch {
      // The first error is the one that matters.
      try? store.blocking.close()
      throw error
    }
    try store.blocking.close()
    return result
  }

  /// Checks everything in the store.
  /// - Parameter recordsDamage: whether damage is put on record in the store.
  func verify(recordsDamage: Bool) throws -> VerifyReport {
    try Store.verifyBlocking(
      at: path, configuration: configuration(.readOnly), recordsDamage: recordsDamage)
  }

  /// Brings what can be read into a new store.
  func repair(into target: String) throws -> RepairReport {
    try Store.repairBlocking(at: path, into: target, configuration: configuration(.readOnly))
  }
}
