// Operations on persistent memory for a kernel source: inline assembly that clang passes on as it is. See
// `durawarp ptx check` for all of them.
#pragma once

// What this thread stored before is durable before what it stores behind it.
__device__ inline void pm_barrier_wi() { asm volatile("pm.barrier.wi;" ::: "memory"); }

// The same of all threads of the CTA, which wait for each other.
__device__ inline void pm_barrier_wg() { asm volatile("pm.barrier.wg;" ::: "memory"); }

// The same of all threads of the grid, which wait for each other.
__device__ inline void pm_barrier_kr() { asm volatile("pm.barrier.kr;" ::: "memory"); }
