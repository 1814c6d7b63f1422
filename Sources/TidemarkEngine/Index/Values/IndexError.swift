/// Why the index could not answer. An image is one of its sorted runs, a file on the disk.
package enum IndexError: Error, Sendable {
  /// A chunk of the image does not match its checksum, or what it holds contradicts the rest.
  /// The image is void, as after `imageInvalid`: the index is made anew by a replay of the log.
  case imageDamaged(chunk: Int)
  /// The image's header is damaged, from a later version, or of another file, or counts differ.
  case imageInvalid(FormatError)
  /// Reading or writing the image failed.
  case fileSystem(FileSystemError)
  /// A key, a set of labels or the number of them is beyond what the index can hold.
  case limitExceeded
}
