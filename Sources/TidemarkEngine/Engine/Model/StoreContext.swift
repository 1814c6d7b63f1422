/// What all owners of a part of a store's state share: path, settings, file system, clock, keys of
/// encryption, and caches of reads. The objects in it have locks of their own.
package struct StoreContext: Sendable {
  package let path: String
  package let configuration: EngineConfiguration
  package let environment: EngineEnvironment
  let contexts = ZstdContexts()
  let keys: KeyRing
  let caches: LogCaches
  /// Called after every change of the visible or durable sequence, outside the engine's locks.
  let observers = Observers()
}

/// An owner of a part of a store's state, as ``LogWriter`` is: no other type changes that part.
package protocol StateOwner: Sendable { var store: StoreContext { get } }

/// Shorthands. Each copies what it returns, so the write path of other modules asks `store` itself.
extension StateOwner {
  package var path: String { store.path }
  package var configuration: EngineConfiguration { store.configuration }
  package var environment: EngineEnvironment { store.environment }
  var fileSystem: any FileSystem { store.environment.fileSystem }
  var contexts: ZstdContexts { store.contexts }
  var keys: KeyRing { store.keys }

  /// Free bytes on the disk; nil if the system does not tell.
  package var freeBytes: Int? { fileSystem.freeBytes(path) }

  /// The time now, in milliseconds since 1970.
  var millisecondsNow: UInt64 { UInt64(clamping: environment.clock.now().milliseconds) }

  /// Draws a random key for a new encrypted file.
  /// - Parameter id: the user's key that encrypts the file's key; nil for a file in the clear.
  func newFileKey(_ id: Encryption.KeyID?) throws(TidemarkError) -> NewFileKey? {
    try keys.newFileKey(id, random: environment.randomBytes)
  }

  /// Removes a file that MANIFEST does not list any more. A failure is ignored, since the next
  /// opening for writing removes such files. Readers that have the file open go on reading it.
  /// - Parameter file: relative to the store's directory.
  func discard(_ file: String) { try? fileSystem.remove(path + "/" + file) }

  /// Removes the files of sorted runs of the index that MANIFEST does not list any more.
  func discard(_ runs: [Manifest.SortedRun]) {
    for run in runs { discard(StoreLayout.indexDirectory + "/" + run.fileName) }
  }
}
