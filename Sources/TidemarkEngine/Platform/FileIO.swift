extension File {
  /// Fills a buffer from `offset` on, as far as the file goes.
  /// - Returns: how many bytes were read; fewer than asked for only at the end of the file.
  package func readFully(
    into buffer: inout MutableRawSpan, at offset: Int
  ) throws(FileSystemError) -> Int {
    let wanted = buffer.byteCount
    var done = 0
    while done < wanted {
      var rest = buffer._mutatingExtracting(droppingFirst: done)
      let count = try read(into: &rest, at: offset + done)
      if count == 0 { break }
      // A file system that claims more than there was room for would spoil the offsets below.
      guard count > 0, count <= wanted - done else {
        throw FileSystemError(.read, path: "", number: ErrorNumber.inputOutput)
      }
      done += count
    }
    return done
  }

  /// Reads up to `count` bytes; fewer only at the end of the file.
  ///
  /// Allocates no more than ``Limits/readBytesUnasked`` or the length of the file, so that a wrong
  /// `count` from a damaged file does no harm.
  package func read(_ count: Int, at offset: Int) throws(FileSystemError) -> [UInt8] {
    guard count >= 0, offset >= 0 else {
      throw FileSystemError(.read, path: "", number: ErrorNumber.invalidArgument)
    }
    // Asking for the length takes half as long as the read itself, so small reads do not ask.
    let most = count <= Limits.readBytesUnasked ? count : min(count, max(0, try length() - offset))
    var bytes = [UInt8](repeating: 0, count: most)
    let done = try bytes.withMutableRawSpan { (span) throws(FileSystemError) in
      try readFully(into: &span, at: offset)
    }
    bytes.removeLast(bytes.count - done)
    return bytes
  }

  /// Writes all bytes at `offset`.
  package func writeFully(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) {
    var done = 0
    while done < bytes.byteCount {
      let rest = bytes.extracting(droppingFirst: done)
      let count = try write(rest, at: offset + done)
      // A file system that writes nothing would keep this loop running for ever.
      guard count > 0, count <= rest.byteCount else {
        throw FileSystemError(.write, path: "", number: ErrorNumber.inputOutput)
      }
      done += count
    }
  }
}

extension FileSystem {
  /// The names in a directory; none where the directory is missing.
  func names(in directory: String) throws(FileSystemError) -> [String] {
    try kind(directory) == .directory ? try list(directory) : []
  }
}
