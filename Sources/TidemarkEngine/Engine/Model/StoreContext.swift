/// The place, the settings and the tools that all owners of a store's state share.
package struct StoreContext: Sendable {
  package let path: String
  package let configuration: EngineConfiguration
  package let environment: EngineEnvironment
  let contexts = ZstdContexts()
  let keys: KeyRing
  let caches: LogCaches
  /// Called after every change of the durable or the visible sequence.
  let observers = Observers()
}

/// An owner of a part of a store's state: nobody else takes its lock or names what it stores.
package protocol StateOwner: Sendable {
  var store: StoreContext { get }
}

/// Other modules ask `store` itself where each write comes by: these copy what they return.
extension StateOwner {
  package var path: String { store.path }
  package var configuration: EngineConfiguration { store.configuration }
  package var environment: EngineEnvironment { store.environment }
  var fileSystem: any FileSystem { store.environment.fileSystem }
  var contexts: ZstdContexts { store.contexts }
  var keys: KeyRing { store.keys }

  /// Bytes that are free on the disk; nil where that is not known.
  package var freeBytes: Int? { fileSystem.freeBytes(path) }

  /// The time now, in milliseconds since 1970.
  var millisecondsNow: UInt64 { UInt64(clamping: environment.clock.now().milliseconds) }

  /// Draws a key for a new file.
  /// - Parameter id: the user's key that wraps it; nil for a file that is not encrypted.
  func newFileKey(_ id: Encryption.KeyID?) throws(TidemarkError) -> NewFileKey? {
    try keys.newFileKey(id, random: environment.randomBytes)
  }

  /// Removes a file of the store; one that cannot be removed now is a leftover, which the next
  /// opening clears away.
  func discard(_ file: String) { try? fileSystem.remove(path + "/" + file) }

  /// Removes the files of runs that MANIFEST names no more.
  func discard(_ runs: [Manifest.Image]) {
    for run in runs { discard(StoreLayout.indexDirectory + "/" + run.fileName) }
  }
}
