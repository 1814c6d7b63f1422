/// Why the index could not answer.
package enum IndexError: Error, Sendable {
  /// A chunk of the image does not match its checksum, or what it holds contradicts the rest.
  /// The image is void: an older one or a replay takes its place.
  case imageDamaged(chunk: Int)
  /// The image's header is damaged, from a later version, or of another file.
  case imageInvalid(FormatError)
  /// Reading or writing the image failed.
  case fileSystem(FileSystemError)
  /// A key, a set of labels or the number of them is beyond what the index can hold.
  case limitExceeded
}
