/// Files in a store's folders that MANIFEST does not list.
struct LogLeftovers {
  let path: String
  let fileSystem: any FileSystem
  let contexts: ZstdContexts

  /// Names relative to the store, of unlisted segments and images.
  func unlisted(_ manifest: Manifest) throws(FileSystemError) -> [String] {
    let listed = Set(manifest.segments.map(\.fileName)).union(manifest.images.map(\.fileName))
    var names: [String] = []
    for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory]
    where try fileSystem.kind(path + "/" + folder) == .directory {
      for name in try fileSystem.list(path + "/" + folder) where !listed.contains(name) {
        names.append(folder + "/" + name)
      }
    }
    return names
  }

  /// The first sequence in a file of the log, if it holds entries of this store beyond the
  /// log's end.
  func firstSequence(
    in name: String, _ manifest: Manifest, after last: UInt64
  ) throws(FileSystemError) -> UInt64? {
    guard name.hasPrefix(StoreLayout.logDirectory + "/") else { return nil }
    let file: any File
    do { file = try fileSystem.open(path + "/" + name, .read) } catch {
      if error.number == ErrorNumber.noEntry { return nil }
      throw error
    }
    defer { file.close() }
    let header: SegmentHeader
    do throws(LogReadError) { header = try SegmentReader.header(file) } catch {
      if case .system(let error) = error { throw error }
      return nil
    }
    guard header.storeID == manifest.storeID, header.baseSequence > last else { return nil }
    let walker = FrameWalker(
      try WindowReader(file), salt: header.salt, codecs: FrameCodecs(contexts: contexts),
      from: header.firstFrame)
    return try walker.search(from: header.firstFrame, sequence: last + 1)?.header.firstSequence
  }
}
