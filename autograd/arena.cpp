#include "lamina/autograd/arena.hpp"

namespace lamina {

struct alignas(std::max_align_t) Arena::Chunk {
  Chunk* next;
  std::size_t bytes;  // after this header
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

namespace {

constexpr std::size_t kChunkBytes = 8192 - sizeof(Arena::Chunk);
#if defined(__SANITIZE_ADDRESS__)
constexpr int kKeptChunks = 0;  // so that a use of a dead node is found
#else
constexpr int kKeptChunks = 128;  // 1 MiB a thread
#endif

// The free chunks of a thread. A list of its own, without a destructor: tapes may end after the thread's other objects.
struct FreeChunks {
  Arena::Chunk* first;
  int count;
  bool closed;
};
constinit thread_local FreeChunks free_chunks{};

struct FreeAtThreadEnd {
  ~FreeAtThreadEnd() {
    free_chunks.closed = true;
    while (Arena::Chunk* chunk = free_chunks.first) {
      free_chunks.first = chunk->next;
      ::operator delete(chunk);
    }
  }
};

}  // namespace

void* Arena::grow(std::size_t bytes) {
  Chunk* chunk = nullptr;
  if (bytes <= kChunkBytes && free_chunks.first != nullptr) {
    chunk = free_chunks.first;
    free_chunks.first = chunk->next;
    --free_chunks.count;
  } else {
    const std::size_t size = bytes <= kChunkBytes ? kChunkBytes : bytes;
    chunk = ::new (::operator new(sizeof(Chunk) + size)) Chunk{nullptr, size};
  }
  chunk->next = chunks_;
  chunks_ = chunk;
  next_ = chunk->data();
  end_ = next_ + chunk->bytes;
  return next_;
}

Arena::~Arena() {
  static thread_local const FreeAtThreadEnd free_at_thread_end;
  (void)free_at_thread_end;
  while (Chunk* chunk = chunks_) {
    chunks_ = chunk->next;
    if (chunk->bytes == kChunkBytes && free_chunks.count < kKeptChunks && !free_chunks.closed) {
      chunk->next = free_chunks.first;
      free_chunks.first = chunk;
      ++free_chunks.count;
    } else {
      ::operator delete(chunk);
    }
  }
}

}  // namespace lamina
